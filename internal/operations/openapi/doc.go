// Package openapi makes the OpenAPI document of operations and of the Go types of their answers.
//
// # Model
//
// Make gives the document. Paths and parameters are from the declarations (package operations), schemas
// from the types, by the rules of encoding/json. A type with a name of its own is a component. Others stand
// where they are used. What a type does not say is said for it, or for one member (Types): the words that
// a text may be, or what a number means. A member is required unless it is omitted when empty. An object
// has no other members than its type has.
//
// It is pure: no I/O, no clock.
package openapi
