// Package lint holds the checks that golangci-lint does not have: prose reads the language of
// documents and comments, rooms draws the map of DESIGN.md.
package lint
