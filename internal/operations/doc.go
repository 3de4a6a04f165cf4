// Package operations declares what Almanac can be asked, once for every door.
//
// # Model
//
// An Operation is a name, an HTTP route, its parameters, and what it is answered with. A Param has one
// type, one help text and one set of bounds. It is data: what carries an
// operation out is with the door (internal/gateway/api) or the package that it asks.
//
// Ways says of every verb and operation whether it has both doors, and why where it has one.
//
// From the declarations come the registration of routes, the reading and the refusal of HTTP
// parameters, /openapi.yaml (package openapi below), which routes the audit of reads records,
// flags of the verbs that ask for the same, and docs/reference.md. A verb declares the flags that it alone has as
// parameters too: their help, completion and checks come in the same way.
//
// # Adding one
//
// Declare it in the file of its subject, add it to Ways, and register its handler under it. An answer
// is named: the type of that name is in answers.go of the API. Tests fail for what is missing.
package operations
