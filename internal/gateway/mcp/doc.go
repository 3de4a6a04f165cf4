// Package mcp is the endpoint for assistants: the reads of the API as tools of the Model Context Protocol.
//
// # Model
//
// A tool is an operation that declares a name for it (operations.Operation.Tool). Its schema is made of the
// operation's parameters. A call of it is a request to the operation's route, made for who asks, and its result is
// what the route answers. So a tool has the rights, the row limits, the record, the bounds and the refusals of its
// route, and none of its own. Nothing that changes what is stored is a tool.
//
// An Endpoint serves POST /mcp without sessions: each message stands for itself, and nothing is kept between two. Over
// stdio it is the same, with a gateway at the other end of an http.Client.
//
// # Who is authoritative
//
// The route.
//
// # Failures
//
// A refusal of a route is the result of the call, marked as an error, with its hint. An answer above MaxAnswer is cut
// where lines end, asked for again with a smaller limit, or refused with what would narrow it. Calls beyond MaxCalls are
// refused, not kept waiting.
package mcp
