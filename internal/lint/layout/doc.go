// Layout draws the map of DESIGN.md from the packages themselves. The map says which folders
// there are, what each is for, and which stands on which.
//
//	go run ./internal/lint/layout      compares DESIGN.md with the packages
//	go run ./internal/lint/layout -w   writes the map into DESIGN.md
//
// Drawn is each folder at the top, or below internal. What it is for is the first sentence of its doc.go. An arrow
// that follows from two others is not drawn. The linter's lists (.golangci.yml) have all of them.
package main
