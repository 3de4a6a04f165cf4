package query

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRelayParams(t *testing.T) {
	t.Parallel()
	got := relayParams(url.Values{
		"query": {"SELECT 1"}, "user": {"root"}, "password": {"x"}, "readonly": {"0"}, "role": {"admin"}, "profile": {"almanac"}, "session_id": {"of-another"}, "session_timeout": {"9"}, "query_id": {"q"}, "param_a": {"1"},
		"max_execution_time": {"5"}, "max_memory_usage": {"99999999999999"}, "max_result_rows": {"0"}, "wait_end_of_query": {"1"},
	})
	want := url.Values{
		"query": {"SELECT 1"}, "readonly": {"2"}, "query_id": {"http-q"}, "param_a": {"1"}, "max_execution_time": {"5"},
		"max_memory_usage": {"2147483648"}, "max_result_rows": {"1000000"}, "wait_end_of_query": {"1"}, "http_write_exception_in_output_format": {"0"}, "cancel_http_readonly_queries_on_client_close": {"1"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
