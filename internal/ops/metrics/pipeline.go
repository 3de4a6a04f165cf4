package metrics

// Buckets of histograms.
var (
	seconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	rows    = []float64{1, 10, 100, 1_000, 10_000, 50_000, 100_000, 500_000}
)

// Of the inputs of a gateway. An input is lines, otlp_http, otlp_grpc, loki, elastic, remote_write, syslog, or audit for recorded reads.
var (
	InputRequests  = counter("almanac_input_requests_total", "Requests that were answered, by the code of their answer.", "input", "code")
	InputDuration  = histogram("almanac_input_request_duration_seconds", "How long requests took.", seconds, "input")
	InputEvents    = counter("almanac_input_events_total", "Events by what became of them: stored, taken (not waited for), unknown, not-taken (the client sends them again) or refused.", "input", "topic", "outcome")
	InputRefused   = counter("almanac_input_refused_events_total", "Events that broke a rule, by which.", "input", "reason")
	InputReceived  = counter("almanac_input_received_bytes_total", "Bytes of requests as they were sent.", "input")
	InputDecoded   = counter("almanac_input_decoded_bytes_total", "Bytes of the events that requests had.", "input")
	InputThrottled = counter("almanac_input_throttled_total", "Requests of which nothing was taken for now: busy, stalled, draining, rate or too_many_topics.", "input", "reason")
	InputRepeated  = counter("almanac_input_repeated_requests_total", "Requests whose events the stream had already, under the same key.", "input")
	InputLast      = gauge("almanac_input_last_event_timestamp_seconds", "When events of a topic were last taken from an input.", "input", "topic")
	Refused        = counter("almanac_refused_total", "Requests, calls and connections that a bound refused or ended: full (all that there may be are under way), share (all that one client may have), idle (another needed its slot), unfinished (a syslog message without an end), not_allowed (syslog_allow).", "what", "reason")
	InputInFlight  = gauge("almanac_input_inflight_bytes", "Bytes that requests under way hold.")
	Tails          = gauge("almanac_tails", "Tails that are followed now, by where: v1 (that of the API, and of the page) or loki.", "endpoint")
	InputsLimit    = gauge("almanac_input_inflight_limit_bytes", "Bytes that requests under way may hold together.")
)

// Of who asks.
var (
	AuthFailures = counter("almanac_auth_failures_total", "Requests that were refused for who sent them: malformed, unknown, wrong, expired, network, certificate, none (a token is needed), denied (it lacks a role), wrong_host, navigation, cross_origin or bad_header (two secrets).", "reason")
	TokenEvents  = counter("almanac_token_events_total", "Events that were taken, by the name of the token.", "token")
	CertEnds     = gauge("almanac_tls_certificate_expiry_timestamp_seconds", "When the certificate that is in use ends, by the setting that names it: tls, syslog, nats or acme (the first of its hosts). Absent while there is none.", "listener")
	CertsMissing = gauge("almanac_tls_certificates_missing", "Hosts of acme_hosts that no certificate was issued for yet: their clients are refused. 0 for certificates of files.", "listener")
)

// Of the producers of a gateway, one for each topic that events were sent to.
var (
	ProducerLogged   = counter("almanac_producer_logged_events_total", "Events that the producer was given.", "topic")
	ProducerStored   = counter("almanac_producer_stored_events_total", "Events that the stream acknowledged.", "topic")
	ProducerDropped  = counter("almanac_producer_dropped_events_total", "Events that were lost, by cause.", "topic", "cause")
	ProducerResent   = counter("almanac_producer_resent_frames_total", "Frames that were sent again.", "topic")
	ProducerBuffered = gauge("almanac_producer_buffered_bytes", "Bytes of events that wait for the stream.", "topic")
	ProducerOldest   = gauge("almanac_producer_oldest_unanswered_seconds", "Age of the oldest frame that is not acknowledged.", "topic")
)

// Of one router. Lanes have one router, so the sum over routers is the whole.
var (
	RouterEvents    = counter("almanac_router_routed_events_total", "Events that got a place in a shard.", "topic")
	RouterMessages  = counter("almanac_router_routed_messages_total", "Messages of EVENTS that were dealt with.", "topic")
	RouterBytes     = counter("almanac_router_routed_bytes_total", "Bytes that batches had.", "topic")
	RouterDead      = counter("almanac_router_dead_events_total", "Events that became dead letters, by reason.", "topic", "reason")
	RouterRepeated  = counter("almanac_router_repeated_events_total", "Events that had come before, and were passed over.", "topic")
	RouterRotations = counter("almanac_router_rotations_total", "Shards that were full, by what of.", "topic", "reason")
	RouterFaults    = counter("almanac_router_faults_total", "Runs of lanes that ended and began again.", "topic")
	RouterLast      = gauge("almanac_router_last_batch_timestamp_seconds", "When a batch was last committed.", "topic")
)

// Of one sink.
var (
	SinkEvents   = counter("almanac_sink_stored_events_total", "Events that ClickHouse has.", "topic")
	SinkInserts  = counter("almanac_sink_inserts_total", "Inserts by outcome: stored, consumed (answered, and stored nothing) or failed.", "topic", "outcome")
	SinkRows     = histogram("almanac_sink_insert_rows", "Rows of an insert.", rows)
	SinkDuration = histogram("almanac_sink_insert_duration_seconds", "How long an insert took.", seconds)
	SinkClosed   = counter("almanac_sink_closed_shards_total", "Shards that were stored whole.", "topic")
	SinkFaults   = counter("almanac_sink_faults_total", "Work on shards that failed and was tried again; without a topic the sink's own.", "topic")
	SinkLast     = gauge("almanac_sink_last_insert_timestamp_seconds", "When an insert last stored events.", "topic")
)
