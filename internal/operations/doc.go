// Package operations declares what Almanac can be asked, once for every door.
//
// # Model
//
// An Operation is a name, an HTTP route, its parameters, and what it is answered with. A Param has one
// type, one help text and one set of bounds. All lists the operations. It is data: what carries an
// operation out is with the door (internal/gateway/api) or the package that it asks.
//
// Doors says of every verb and operation whether it has both doors, and why where it has one.
//
// From the declarations come the registration of routes, the reading and the refusal of HTTP
// parameters, /openapi.yaml (package openapi below), which routes the audit of reads records,
// flags of the verbs that ask for the same, and docs/reference.md.
//
// # Adding one
//
// Declare it in the file of its subject, add it to All and Doors, and register its handler under it. An answer
// is named: the type of that name is in answers.go of the API. Tests fail for what is missing.
package operations
