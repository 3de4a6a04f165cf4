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
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
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
