// Package certstest makes certificates for tests: an authority, and pairs that it signs.
package certstest
