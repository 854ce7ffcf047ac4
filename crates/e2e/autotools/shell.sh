# What shells do, with results that are the same each time.
set -u
for n in 1 2 3 4 5 6 7 8 9 10; do
    (exit "$n")
    echo "status $?"
done
seq 1 1000 | sort -rn | head -n 3
cat <<END | tr a-z A-Z
here
documents
END
diff <(seq 1 5) <(seq 2 6)
exec 3>&1 4</dev/null
echo "to three" >&3
read -r line <&4 || echo "four is empty"
sleep 0.2 &
wait $!
echo "waited: $?"
trap 'echo "got USR1"' USR1
kill -USR1 $$
yes | head -n 2
echo "pipe: ${PIPESTATUS[*]}"
coproc cat
echo "there and back" >&"${COPROC[1]}"
read -r line <&"${COPROC[0]}"
echo "$line"
exec {COPROC[1]}>&-
wait
python3 - <<'END'
import subprocess
print(subprocess.run(["sh", "-c", "echo from python; exit 3"], capture_output=True))
END
(ulimit -n 10; echo "few descriptors")
(ulimit -f 0; echo "no files"; cat /dev/null)
echo done
