package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// file is one of the bundle.
type file struct {
	contentType, tag string
	text             []byte
	compressed       func() []byte
}

func newFile(contentType string, text []byte) *file {
	sum := sha256.Sum256(text)
	return &file{
		contentType: contentType, text: text, tag: hex.EncodeToString(sum[:8]),
		compressed: sync.OnceValue(func() []byte { return zipped(text) }),
	}
}

// zipped is a text in gzip. Writing into memory does not fail.
func zipped(text []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = w.Write(text)
	_ = w.Close()
	return out.Bytes()
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	text, tag := f.text, `"`+f.tag+`"`
	w.Header().Add("Vary", "Accept-Encoding")
	if takesGzip(r.Header.Values("Accept-Encoding")) {
		text, tag = f.compressed(), `"`+f.tag+`-gzip"`
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.Header().Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(text) // it fails where the client is gone
	}
}

// takesGzip reports whether a client takes gzip: it names it, and not with the weight of what it refuses.
func takesGzip(accepted []string) bool {
	for one := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
		name, weight, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		q, weighed := strings.CutPrefix(strings.ToLower(strings.TrimSpace(weight)), "q=")
		n, err := strconv.ParseFloat(q, 64)
		return !weighed || err == nil && n > 0
	}
	return false
}
