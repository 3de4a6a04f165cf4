package metrics

// Of what waits on its way to ClickHouse. Every gateway says the same.
var (
	RouterLag    = gauge("almanac_router_lag_events", "Events that are accepted, and that no router has dealt with.", "topic")
	RouterBehind = gauge("almanac_router_lag_bytes", "Bytes of their messages, without subjects and headers.", "topic")
	RouterOldest = gauge("almanac_router_oldest_unrouted_seconds", "How long the first of them has waited.", "topic")
	SinkLag      = gauge("almanac_sink_lag_events", "Events that are routed and not stored, at most.", "topic")
	SinkBehind   = gauge("almanac_sink_lag_bytes", "Bytes of their frames in SHARDS, estimated: of a shard of which some frames are stored the others count by its average frame.", "topic")
	SinkOldest   = gauge("almanac_sink_oldest_unstored_seconds", "How long the first of them has waited.", "topic")
	LagKnown     = gauge("almanac_lag_timestamp_seconds", "When what waits was last read: earlier than now while NATS is away.")
)

// Of servers and streams. Every gateway says the same; a router, a sink and a dispatcher alone say of the servers that they need how those are.
var (
	ServerUp      = gauge("almanac_server_up", "1 where the server answers: NATS or ClickHouse. A part alone says it of those that it needs.", "server")
	ServerAway    = gauge("almanac_server_away_seconds", "How long the server has not answered; 0 while it does.", "server")
	StreamUsed    = gauge("almanac_stream_used_bytes", "Bytes that a stream has.", "stream")
	StreamLimit   = gauge("almanac_stream_limit_bytes", "Bytes that a stream may have; 0 where there is no bound.", "stream")
	DiskFree      = gauge("almanac_disk_free_bytes", "Free bytes of the fullest disk that ClickHouse has.")
	DiskTotal     = gauge("almanac_disk_total_bytes", "All bytes of that disk.")
	Members       = now("almanac_members", "Live routers, sinks and dispatchers (timers).", "role")
	Shards        = gauge("almanac_shards", "Shards by status.", "topic", "status")
	DeadLetters   = gauge("almanac_dead_letters", "Messages that are kept as dead letters; of the topic _ those that were published under no topic.", "topic")
	SQLFresh      = gauge("almanac_sql_fresh_seconds", "How soon the topic wants its events in ClickHouse: its sql_fresh.", "topic")
	Overdue       = gauge("almanac_retention_overdue_shards", "Shards that retention should have dropped or cleared.", "topic")
	Erasures      = gauge("almanac_erasures", "Erasures by state.", "state")
	ErasureOldest = gauge("almanac_erasure_oldest_open_seconds", "Age of the oldest erasure that is not carried out; 0: all are.")
	TableRows     = gauge("almanac_table_rows", "Rows of a table: of a topic, or of what is derived from it.", "table")
	TableParts    = gauge("almanac_table_parts", "Parts of a table.", "table")
	TableDisk     = gauge("almanac_table_disk_bytes", "Bytes of a table on disk.", "table")
	Ready         = now("almanac_ready", "1 where the process can do its work, as /readyz says; left out while it stops.")
)

// Of the scheduled verify, in sinks: one of them runs it.
var (
	VerifyMissing  = gauge("almanac_verify_missing_events", "Events that were accepted and that ClickHouse lacks, by the last verify.", "topic")
	VerifyDoubled  = gauge("almanac_verify_doubled_events", "Events that ClickHouse has twice, by the last verify.", "topic")
	VerifyProblems = gauge("almanac_verify_problems", "What the last verify named: each fault with its range.")
	VerifyTime     = gauge("almanac_verify_timestamp_seconds", "When the last verify of this process ended that had an answer; missing before the first one.")
	VerifyEvery    = gauge("almanac_verify_every_seconds", "How far apart runs of verify begin: verify_every.")
	VerifyDuration = gauge("almanac_verify_duration_seconds", "How long it took.")
	VerifyFailures = counter("almanac_verify_failures_total", "Runs of verify without an answer: a server was away.")
)
