package syslog

import "regexp"

// browserRule is how what a page has a browser send begins: a request of HTTP, or of a web socket, or the
// handshake of TLS. No syslog message begins so.
var browserRule = regexp.MustCompile(`^(?:[A-Z]{3,10} [^ ]+ HTTP/[0-9]|\x16\x03)`)

// fromBrowser reports whether the first message of a connection is a browser's. Without it a page could
// write lines into the topic, by the body of its request.
func fromBrowser(line []byte) bool { return browserRule.Match(line) }
