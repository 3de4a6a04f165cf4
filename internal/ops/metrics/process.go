package metrics

// Of the process and of the page itself.
var (
	BuildInfo    = gauge("almanac_build_info", "1, with the version of the binary and of its Go.", "version", "commit", "go")
	SourceFailed = gauge("almanac_metrics_source_failed", "1 where this source could not be read in time: its metrics are missing.", "source")
)
