"""Parts of packaging/build.sh that are easier in Python; its standard library suffices.

    pack.py extract WHEEL DIR cpu|cuda    what an engine is built against, from a wheel of PyTorch
    pack.py cudart WHEEL                  the requirement that brings the CUDA runtime of that wheel
    pack.py sbom STAGE VERSION            write share/roofline/roofline.spdx.json and the licences
    pack.py wheel STAGE VERSION OUT       make a wheel of the staged files
"""
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import zipfile

TAG = "py3-none-manylinux_2_28_x86_64"
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))

# What is linked in or beside the program: Debian's package, its licence.
COMPONENTS = {
    "libjansson-dev": "MIT", "libexpat1-dev": "MIT", "zlib1g-dev": "Zlib", "libpng-dev": "libpng-2.0",
    "libjpeg62-turbo-dev": "IJG AND BSD-3-Clause", "libfreetype-dev": "FTL", "libpixman-1-dev": "MIT",
    "libfontconfig-dev": "HPND-sell-variant", "libglib2.0-dev": "LGPL-2.1-or-later",
    "libpcre2-dev": "BSD-3-Clause", "libffi-dev": "MIT", "libfribidi-dev": "LGPL-2.1-or-later",
    "libcairo2-dev": "LGPL-2.1-only OR MPL-1.1", "libbrotli-dev": "MIT", "libhwloc-dev": "BSD-3-Clause",
    "libharfbuzz-dev": "MIT-Modern-Variant", "libpango1.0-dev": "LGPL-2.0-or-later",
    "fonts-liberation": "OFL-1.1",
}
PYPI = [("onednn-cpu-gomp", "2022.2.1", "Apache-2.0", "lib/roofline/libdnnl.so.2"),
        ("libgomp (of torch)", "2.11.0", "GPL-3.0-or-later WITH GCC-exception-3.1", "lib/roofline/libgomp.so.1")]


def extract(wheel, out, kind):
    libraries = ["torch_cpu", "c10"] + (["torch_cuda", "c10_cuda"] if kind == "cuda" else [])
    wanted = tuple("torch/lib/lib%s.so" % name for name in libraries) + ("torch/version.py",)
    with zipfile.ZipFile(wheel) as z:
        z.extractall(out, [n for n in z.namelist() if n in wanted or n.startswith("torch/include/")])


def cudart(wheel):
    with zipfile.ZipFile(wheel) as z:
        text = z.read(next(n for n in z.namelist() if n.endswith(".dist-info/METADATA"))).decode()
    old = re.search(r"Requires-Dist: (nvidia-cuda-runtime-cu12) ?\(?==([0-9.]+)", text)
    new = re.search(r"Requires-Dist: cuda-toolkit\[.*\]==([0-9.]+)", text)
    print("%s==%s" % old.groups() if old else "cuda-toolkit[cudart,crt]==" + new.group(1))


def staged(stage):
    """All files, in order."""
    for folder, folders, names in os.walk(stage):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            yield os.path.relpath(path, stage), path


def sbom(stage, version):
    doc = os.path.join(stage, "share/doc/roofline")
    os.makedirs(doc + "/licenses", exist_ok=True)
    packages = [("roofline", version, "Apache-2.0", None)]
    for name, licence in COMPONENTS.items():
        installed = subprocess.run(["dpkg-query", "-W", "-f", "${source:Version}", name], check=True,
                                   capture_output=True, text=True).stdout
        packages.append((name, installed, licence, "pkg:deb/debian/%s@%s" % (name, installed.replace("+", "%2B"))))
        with open("/usr/share/doc/%s/copyright" % name, encoding="utf-8") as f, \
                open("%s/licenses/%s" % (doc, name), "w", encoding="utf-8") as to:
            to.write(f.read())
    packages += [(name, v, licence, "pkg:pypi/%s@%s" % (name.split()[-1].strip(")"), v)) for name, v, licence, _ in PYPI]
    files = [{"SPDXID": "SPDXRef-file-%d" % i, "fileName": "./" + name, "checksums": [
        {"algorithm": kind.upper(), "checksumValue": hashlib.new(kind, open(path, "rb").read()).hexdigest()}
        for kind in ("sha1", "sha256")], "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"}
        for i, (name, path) in enumerate(s for s in staged(stage) if not s[0].endswith(".spdx.json"))]
    identifiers = ["SPDXRef-" + re.sub("[^a-z0-9.-]+", "-", name) for name, *_ in packages]
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": "roofline-%s-linux-x86_64" % version,
        "documentNamespace": "urn:roofline:%s:%s" % (version, hashlib.sha256(json.dumps(files).encode()).hexdigest()),
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
                         "creators": ["Tool: packaging/pack.py"]},
        "packages": [
            dict({"SPDXID": i, "name": name, "versionInfo": v, "licenseConcluded": licence, "licenseDeclared": licence,
                  "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": False},
                 **({"externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                       "referenceLocator": purl}]} if purl else {}))
            for i, (name, v, licence, purl) in zip(identifiers, packages)],
        "files": files,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": identifiers[0]}] +
        [{"spdxElementId": identifiers[0], "relationshipType": "CONTAINS", "relatedSpdxElement": i}
         for i in identifiers[1:] + [f["SPDXID"] for f in files]],
    }
    with open(stage + "/share/roofline/roofline.spdx.json", "w", encoding="utf-8") as f:
        json.dump(document, f, indent=1)


def wheel(stage, version, out):
    base = "roofline-%s" % version
    info, data = base + ".dist-info/", base + ".data/"
    metadata = ("Metadata-Version: 2.4\nName: roofline\nVersion: %s\n"
                "Summary: Measures, counts and draws the roofline of neural networks\n"
                "License-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.8\n"
                "Description-Content-Type: text/markdown\n\n" % version)
    members = {}  # name in the wheel: (bytes, mode)
    for name, path in staged(stage):
        with open(path, "rb") as f:
            content = f.read()
        if name == "share/doc/roofline/README.md":
            metadata += content.decode()
        elif name == "share/doc/roofline/LICENSE" or "/licenses/" in name:
            members[info + "licenses/" + os.path.basename(name)] = content, 0o644
        elif name == "share/roofline/region/roofline.py":
            members["roofline.py"] = content, 0o644
        elif name == "bin/roofline":
            members[data + "scripts/roofline"] = content, 0o755
        elif not name.startswith("share/doc/"):
            members[data + "data/" + name] = content, 0o755 if name.startswith("lib/") else 0o644
    members[info + "METADATA"] = metadata.encode(), 0o644
    members[info + "WHEEL"] = ("Wheel-Version: 1.0\nGenerator: packaging/pack.py\nRoot-Is-Purelib: false\nTag: %s\n"
                               % TAG).encode(), 0o644
    record = "".join("%s,sha256=%s,%d\n" % (name, base64.urlsafe_b64encode(hashlib.sha256(content).digest())
                                            .rstrip(b"=").decode(), len(content))
                     for name, (content, _) in members.items()) + info + "RECORD,,\n"
    members[info + "RECORD"] = record.encode(), 0o644
    with zipfile.ZipFile("%s/%s-%s.whl" % (out, base, TAG), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name, (content, mode) in members.items():
            member = zipfile.ZipInfo(name, time.gmtime(max(EPOCH, 315532800))[:6])
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system, member.external_attr = 3, (0o100000 | mode) << 16
            z.writestr(member, content)


if __name__ == "__main__":
    {"extract": extract, "cudart": cudart, "sbom": sbom, "wheel": wheel}[sys.argv[1]](*sys.argv[2:])
