// Package main makes what a release consists of, the same bytes from the same commit.
//
//	go run ./internal/release -version v1.2.3 -o dist
//
// For each target it builds the binary without C, and writes one archive. In it are the binary, completion for three
// shells, and man pages. The licence of every module is in it too, and of every package of the page. Beside the archives
// lies a list of components (SBOM, CycloneDX) for each. SHA256SUMS is over all of them.
//
// The same commit gives the same bytes: paths are trimmed, archives are sorted, owners are 0, and every time is that
// of the commit. A tree with changes is refused, because its commit would not say what is inside. A module without a
// licence fails the release, and so does a tree in which the page was not built. Nothing is published here.
package main
