package metrics

// Of the process and of the page itself.
var (
	BuildInfo    = gauge("almanac_build_info", "1, with the version of the binary and of its Go.", "version", "commit", "go")
	SourceFailed = gauge("almanac_metrics_source_failed", "1 where this source could not be read in time: its metrics are missing, or as old as almanac_metrics_source_age_seconds says.", "source")
	SourceAge    = gauge("almanac_metrics_source_age_seconds", "How old the numbers of this source are; 0 where it was read in time, above 0 while a read takes longer than a scrape waits or fails, missing where nothing is shown of it.", "source")
)
