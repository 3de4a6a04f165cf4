// Package request holds what the HTTP inputs and the API do with every request alike:
// its id, its body within bounds, and an error in one shape.
//
// # The order
//
// Refusal costs least where it comes first: connection limit, header within its time,
// id, draining, then Body, which bounds in this order the bytes on the wire, the time
// they take, the bytes they unpack to, and the ratio of both. Each chunk of an unpacked
// body is reserved in the pool before it is kept.
//
// # Failures
//
// An error in JSON is {"error":{"code","message","hint","request_id"}}. Inputs whose
// protocol has a shape of its own use that one, with the same codes.
package request
