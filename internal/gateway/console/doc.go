// Package console serves the page: Almanac in a browser.
//
// # Model
//
// The page is a bundle below web, of TypeScript, which `make console` writes into dist. A binary that was built without
// it serves a page that says how to build it. The page asks the public API alone, by addresses relative to its own, so
// that it works below a path prefix.
//
// # What protects it
//
// The files say nothing of what is stored, so they need no token, and a browser may go to them (package guard). Their
// policy allows scripts and styles of the same origin only, none inline, no frame around them, and no text that becomes
// markup (Trusted Types). The token is in the page's session storage and is sent as a header.
//
// # Failures
//
// The page is served before the gateway has its servers, and while they are away.
package console
