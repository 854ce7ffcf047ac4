//! `#[derive(SharedSafe)]`: the type is `repr(C)` and each of its fields may live in shared memory.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, parse_macro_input, spanned::Spanned};

#[proc_macro_derive(SharedSafe)]
pub fn derive_shared_safe(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(|e| e.to_compile_error())
        .into()
}

fn expand(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new(
            input.span(),
            "only structs may live in shared memory",
        ));
    };
    if !is_repr_c(input)? {
        return Err(syn::Error::new(
            input.span(),
            "a type in shared memory needs #[repr(C)]",
        ));
    }
    let name = &input.ident;
    let (impls, generics, bounds) = input.generics.split_for_impl();
    let types = data.fields.iter().map(|f| &f.ty);
    Ok(quote! {
        // SAFETY: repr(C), and the function below compiles only if every field is SharedSafe.
        unsafe impl #impls ::headwater_channel::shm::SharedSafe for #name #generics #bounds {}
        const _: () = {
            #[allow(dead_code)]
            fn fields #impls () #bounds {
                fn safe<T: ::headwater_channel::shm::SharedSafe>() {}
                #( safe::<#types>(); )*
            }
        };
    })
}

fn is_repr_c(input: &DeriveInput) -> syn::Result<bool> {
    let mut found = false;
    for attr in input.attrs.iter().filter(|a| a.path().is_ident("repr")) {
        attr.parse_nested_meta(|meta| {
            found |= meta.path.is_ident("C");
            if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<proc_macro2::TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}
