# An image with nothing but the program. The image has no shell and no libraries, and does not run as
# root.
#
#   docker build --build-arg VERSION=0.1.0 -t holdfast .
#   docker run --rm holdfast version
#   docker build --target prebuilt -f Dockerfile -t holdfast DIR   # copies the program from DIR

# prebuilt copies the program of a release or of make release-dry-run, and needs no network. This
# image has no certificates. For a rediss:// URL, mount a file with certificates and pass --cacert.
# prebuilt comes first because Docker's older builder builds all stages above the target.
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
