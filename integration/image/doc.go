// Package image tests the image that the Dockerfile builds. Its tests have the build tag containers
// and need a Docker engine on this machine: make image starts one.
package image
