// Package acmetest starts an authority that speaks ACME, for tests: Let's Encrypt's pebble, on
// loopback, with a CA of its own. The test ends it. What cannot start fails the test.
package acmetest
