// Package api serves reads over HTTP as JSON, NDJSON and server-sent events.
//
//	GET  /v1/topics                          the descriptors
//	GET  /v1/topics/{topic}/events           a page: from, to, where, limit, cursor, order, fields
//	GET  /v1/topics/{topic}/count            from, to, where
//	GET  /v1/topics/{topic}/histogram        the same, step and by
//	GET  /v1/topics/{topic}/tail             where, fields; Last-Event-ID resumes
//	GET  /v1/shards                          topic, month
//	POST /v1/sql                             the body is a SELECT; format
//
// # Model
//
// Each request is one call of package query, whose answers it passes on as they are. A
// tail is server-sent events, whose ids are positions, or NDJSON where the client accepts
// that; then each line has the position under _pos. SQL streams in any format of ClickHouse.
//
// # Failures
//
// Errors have the shape of package request. An error after the first byte of an answer
// ends the connection, so that half an answer is not taken for a whole one. Tails and
// statements under way are bounded, and every write has a deadline.
package api
