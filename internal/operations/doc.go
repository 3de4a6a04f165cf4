// Package operations declares what Almanac can be asked, once for every door.
//
// # Model
//
// An Operation is a name, an HTTP route, its parameters, and what it is answered with. A Param has one
// type, one help text and one set of bounds. All lists the operations. It is data: what carries an
// operation out is with the door (internal/gateway/api) or the package that it asks.
//
// From the declarations come the registration of routes, the reading and the refusal of HTTP
// parameters, /openapi.yaml (package openapi below), and which routes the audit of reads records.
//
// # Adding one
//
// Declare it in the file of its subject, add it to All, and register its handler under it. An answer
// is named: the type of that name is in answers.go of the API. Tests fail for what is missing.
package operations
