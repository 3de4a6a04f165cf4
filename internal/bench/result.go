package bench

// Result is one run. Rates are events a second; CPU is microseconds an event.
type Result struct {
	EventsPerSecond        float64 `json:"events_per_second"`
	CeilingEventsPerSecond float64 `json:"ceiling_events_per_second"`
	Ratio                  float64 `json:"ratio"`

	Events     int `json:"events"`
	Producers  int `json:"producers"`
	Topics     int `json:"topics"`
	Lanes      int `json:"lanes"`
	EventBytes int `json:"event_bytes"`
	Inserts    int `json:"inserts"`

	AcceptedSeconds float64 `json:"accepted_seconds"` // until the last PubAck
	StoredSeconds   float64 `json:"stored_seconds"`   // until the last row
	CeilingSeconds  float64 `json:"ceiling_seconds"`

	// CPUMicros is CPU time an event, by part: producer, nats, router, sink,
	// clickhouse, gc, other. Sampled 100 times a second.
	CPUMicros map[string]float64 `json:"cpu_us_per_event"`

	// Engine is what ClickHouse did meanwhile, CeilingEngine what it did for the
	// ceiling.
	Engine        Engine `json:"engine"`
	CeilingEngine Engine `json:"ceiling_engine"`

	WireBytes  float64 `json:"wire_bytes_per_event"`   // a frame's share
	StreamDisk float64 `json:"shards_bytes_per_event"` // in SHARDS, with headers
	TableDisk  float64 `json:"table_bytes_per_event"`  // in ClickHouse, as merged so far

	Frames        int    `json:"frames"`
	PeakRSSBytes  int64  `json:"peak_rss_bytes"` // this process
	CPUs          int    `json:"cpus"`
	GoVersion     string `json:"go"`
	EngineVersion string `json:"clickhouse"`
}
