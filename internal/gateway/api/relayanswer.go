package api

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// relayedTypes are the content types of ClickHouse's formats that a relayed answer may have. What a
// browser shows as a page or runs as a script is none of them: XML is passed on as bytes.
var relayedTypes = []string{
	"application/json", "application/x-ndjson", "application/octet-stream", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream",
	"text/plain", "text/csv", "text/tab-separated-values",
}

// relayedHeaders are those of ClickHouse's answer that its clients read.
var relayedHeaders = []string{
	"Content-Encoding", "X-Clickhouse-Database", "X-Clickhouse-Exception-Code", "X-Clickhouse-Exception-Tag", "X-Clickhouse-Format", "X-Clickhouse-Progress", "X-Clickhouse-Query-Id",
	"X-Clickhouse-Server-Display-Name", "X-Clickhouse-Summary", "X-Clickhouse-Timezone",
}

// relayedAnswer is what of ClickHouse's headers a relayed answer has. A statement can set any of them.
func relayedAnswer(from http.Header) http.Header {
	out := http.Header{"Content-Type": {relayedType(from.Get("Content-Type"))}}
	for _, name := range relayedHeaders {
		if values := from.Values(name); len(values) > 0 {
			out[name] = values
		}
	}
	return out
}

// relayedType is a content type that clients may be given for one of ClickHouse's.
func relayedType(text string) string {
	kind, params, err := mime.ParseMediaType(text)
	if err != nil || !slices.Contains(relayedTypes, kind) {
		return "application/octet-stream"
	}
	kept := map[string]string{}
	if header := params["header"]; header == "present" || header == "absent" {
		kept["header"] = header
	}
	if strings.EqualFold(params["charset"], "utf-8") {
		kept["charset"] = "UTF-8"
	}
	return mime.FormatMediaType(kind, kept)
}
