// Prose checks the language of documents and package comments (CONTRIBUTING.md,
// "Language").
//
//	go run ./internal/lint/prose
//
// It prints the median and the longest sentence of each document and each doc.go.
// It exits with 1 when a median is above MaxMedianWords. It does so too when a Go or
// Markdown file has a word that this project retired, and when a document names a path,
// or a comment a name or a file, that is not in the tree. A comment over a name may not begin with another.
package main
