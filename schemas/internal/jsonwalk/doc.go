// Package jsonwalk walks JSON: it cuts values out of it, and keeps every byte as it was
// written. encoding/json would replace bytes that are not UTF-8, and lone surrogates, by
// U+FFFD. What it takes for JSON is what encoding/json takes (check.go); Cursor is for
// JSON that was checked before.
package jsonwalk
