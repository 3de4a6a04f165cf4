// Package lint holds the checks that golangci-lint does not have. Prose reads the language of
// documents and comments. Layout draws the map of DESIGN.md.
// Statements finds SQL that belongs into a file of schemas/sql.
package lint
