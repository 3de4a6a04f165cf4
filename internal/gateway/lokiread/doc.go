// Package lokiread answers Loki's HTTP API for reads over topics of kinds log and audit, for Grafana's Explore, its Logs Drilldown
// and other clients of Loki.
//
// # Model
//
//	query, query_range                       lines and numbers by LogQL
//	labels, label, label/NAME/values         what names streams
//	series, index/stats, index/volume(_range) which streams there are, and how much they have
//	detected_labels, detected_fields         what the newest lines have
//	detected_field/NAME/values               and the values of one field
//	tail                                     lines as they are routed, over a WebSocket
//	patterns                                 none: an empty list
//	status/buildinfo                         so that clients know what to ask for
//
// All lie below /loki/api/v1, and below /t/TOPIC/loki/api/v1 for one topic. Without a topic in the path X-Scope-OrgID names it,
// where it is written as names of topics are; else a query is over all topics that who asks may read, and the label topic tells them apart. Each
// takes GET, and POST with a form; tail GET alone. Paths, parameters and answers are Loki's own, and documented there.
//
// # Who is authoritative
//
// Package logql answers. This one reads parameters and writes JSON.
//
// # Failures
//
// An error is a text, as Loki's are: 400 for what the request has wrong or asks too much, 401 and 403 without the right to read,
// 404 for a topic that is not there, 503 while too many queries are under way, 504 where it takes too long.
package lokiread
