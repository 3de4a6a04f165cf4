package inputtest

import (
	"bytes"
	"io"
	"net/http"
	"testing"
)

// Answer is what a server answered to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Send sends a request, and fails the test where no whole answer comes.
func Send(t testing.TB, method, url string, headers map[string]string, body []byte) Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := Answer{Status: resp.StatusCode, Header: resp.Header}
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return a
}
