"""Holds conversations with an FTP server that confines itself after the log-in, and prints what it says."""
import ftplib
import sys

port = int(sys.argv[1])

for _ in range(3):
    with ftplib.FTP() as ftp:
        print(ftp.connect("127.0.0.1", port, timeout=20))
        print(ftp.login())
        for command in ["PWD", "TYPE I", "NOOP", "MODE S", "STRU F", "FEAT", "HELP"]:
            print(ftp.sendcmd(command))
        for _ in range(100):
            assert ftp.sendcmd("NOOP").startswith("200")
        print(ftp.quit())
