def application(environment, start_response):
    page = b"0123456789abcde\n" * 38
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(page))), ("Connection", "close")]
    start_response("200 OK", headers)
    return [page]
