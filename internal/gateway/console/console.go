package console

import (
	"bytes"
	"embed"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
)

// Path is where the page is.
const Path = "/console/"

//go:embed dist
var built embed.FS

// policy is what the page may do: run its own scripts and styles, and ask its own origin. No text becomes markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// hashed are the names of files that have a hash of what they hold: such a file is never another one.
var hashed = regexp.MustCompile(`-[0-9A-Z]{8}\.[a-z]+$`)

// placeholder is the page of a binary without the bundle.
const placeholder = "placeholder.html"

// Owns reports whether a path is the page's, and so one that a browser may go to.
func Owns(p string) bool {
	return p == "/" || p == strings.TrimSuffix(Path, "/") || strings.HasPrefix(p, Path)
}

// Built reports whether this binary has the bundle.
func Built() bool { return newFiles(built).index != placeholder }

// New returns the handler of the paths that Owns names.
func New() http.Handler { return newFiles(built) }

// linkedMark is an attribute that the page's root element has where a page of another site led to it: then it takes no token of its
// address. Else such a page could have people act under a token of its own without their knowing.
const linkedMark = "data-linked"

// linked reports whether a page of another site had the browser come. Browsers say so over TLS and on loopback.
func linked(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "none" && site != "same-origin"
}

// files are those of a bundle, in memory: 200 KB and their compressed forms.
type files struct {
	index  string
	linked *file // the index with linkedMark
	all    map[string]*file
}

func newFiles(from fs.FS) *files {
	f := &files{index: placeholder, all: map[string]*file{}}
	// The files are part of the binary: reading them cannot fail.
	_ = fs.WalkDir(from, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		f.all[path.Base(name)] = newFile(mime.TypeByExtension(path.Ext(name)), text)
		return nil
	})
	if f.all["index.html"] != nil {
		f.index = "index.html"
	}
	one := f.all[f.index]
	f.linked = newFile(one.contentType, bytes.Replace(one.text, []byte("<html"), []byte("<html "+linkedMark), 1))
	return f
}

// ServeHTTP implements http.Handler.
func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page is only read", http.StatusMethodNotAllowed)
		return
	}
	name, below := strings.CutPrefix(r.URL.Path, Path)
	if !below {
		// Relative, so that it leads to the page below a path prefix too.
		w.Header().Set("Location", "."+Path)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
	w.Header().Set("Referrer-Policy", "same-origin") // over plain text its own reads are known by it (package guard)
	if name == "" || name == "index.html" {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Vary", "Sec-Fetch-Site")
		if linked(r) {
			f.linked.serve(w, r)
			return
		}
		f.all[f.index].serve(w, r)
		return
	}
	one := f.all[name]
	if one == nil {
		http.Error(w, "the page has no such file; a newer one is at "+Path, http.StatusNotFound)
		return
	}
	if w.Header().Set("Cache-Control", "no-cache"); hashed.MatchString(name) {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	one.serve(w, r)
}
