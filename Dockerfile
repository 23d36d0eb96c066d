# An image with nothing but the program: no shell, no libraries, not root.
#
#   docker build --build-arg VERSION=0.1.0 -t holdfast .
#   docker run --rm holdfast version
#   docker build --target prebuilt -t holdfast DIR   takes the program from DIR, with -f Dockerfile
#
# Docker's older builder builds all stages above the target, so the offline one comes first.

# prebuilt takes the program from a release or from make release-dry-run, and needs no network. It
# has no certificates: for a rediss:// URL mount some, and pass --cacert.
FROM scratch AS prebuilt
COPY holdfast /holdfast
USER 65532:65532
ENTRYPOINT ["/holdfast"]

FROM golang:1.26 AS build
ARG VERSION=
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 GOWORK=off go build -C cmd/holdfast -trimpath -buildvcs=false \
    -ldflags="-s -w -X main.release=$VERSION" -o /holdfast .

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /holdfast /holdfast
USER 65532:65532
ENTRYPOINT ["/holdfast"]
