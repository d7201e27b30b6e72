# SPDX-License-Identifier: MIT
"""Certificates for tests in Python, made with openssl."""
import datetime
import pathlib
import subprocess

CONFIG = """[ca]
default_ca = here
[here]
database = {name}.index
serial = {name}.serial
crlnumber = {name}.crlnumber
new_certs_dir = .
default_md = sha256
default_days = 2
default_crl_days = 2
policy = any
unique_subject = no
[any]
commonName = optional
"""
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def days_from_now(n):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=n)).strftime("%Y%m%d%H%M%SZ")


class Authority:
    """Makes certificates in a folder."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = pathlib.Path(folder), name
        self.openssl("req", "-x509", *CURVE, "-keyout", f"{name}.key", "-out", f"{name}.pem",
                     "-subj", f"/CN=test authority {name}", "-days", "2", "-addext", "keyUsage=keyCertSign,cRLSign")
        self.ca = self.folder / f"{name}.pem"
        self.file(".conf").write_text(CONFIG.format(name=name))
        self.file(".index").write_text("")
        for end in (".serial", ".crlnumber"):
            self.file(end).write_text("01\n")

    def file(self, end):
        return self.folder / (self.name + end)

    def openssl(self, *words):
        return subprocess.run(["openssl", *map(str, words)], cwd=self.folder, check=True, capture_output=True,
                              text=True).stdout

    def of_ca(self, *words):
        return self.openssl("ca", "-batch", "-config", self.file(".conf"), "-cert", self.ca, "-keyfile",
                            self.file(".key"), *words)

    def sign(self, name, alternative, days=2, since=-1, subject="/CN=test", usage=None):
        """A certificate for subjectAltName, or none for None, that is valid from `since` to
        `days`, both in days from now."""
        lines = ["subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid", "basicConstraints=CA:FALSE"]
        lines += [f"subjectAltName={alternative}"] if alternative else []
        lines += [f"extendedKeyUsage={usage}"] if usage else []
        (self.folder / f"{name}.ext").write_text("\n".join(lines) + "\n")
        self.openssl("req", *CURVE, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        self.of_ca("-in", f"{name}.csr", "-extfile", f"{name}.ext", "-startdate", days_from_now(min(since, days - 1)),
                   "-enddate", days_from_now(days), "-out", f"{name}.pem", "-notext")
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"

    def revoke(self, *pairs):
        """A list with these certificates."""
        for certificate, _ in pairs:
            self.of_ca("-revoke", certificate)
        self.of_ca("-gencrl", "-out", f"{self.name}.crl")
        return self.file(".crl")

    def fingerprint(self, pair):
        said = self.openssl("x509", "-in", pair[0], "-noout", "-fingerprint", "-sha256")
        return said.strip().split("=")[1]
