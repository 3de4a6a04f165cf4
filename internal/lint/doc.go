// Package lint holds the checks that golangci-lint does not have. Prose reads the language of
// documents and comments. Layout draws the map of DESIGN.md.
package lint
