# The program with the torch engine for CPUs, built from this directory. How to use it: docs/guide/containers.md.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS tools
COPY cmake/packages.sh /tmp/
RUN bash -ec '. /tmp/packages.sh; rfl_install_packages "${RFL_PACKAGES[@]}" debhelper lintian'

FROM tools AS build
WORKDIR /src
COPY . .
RUN packaging/deb.sh /dist

FROM ${BASE}
COPY --from=build /dist/*.deb /tmp/
RUN apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends /tmp/roofline*.deb libopenblas0-pthread && \
    rm -rf /tmp/*.deb /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["roofline"]
