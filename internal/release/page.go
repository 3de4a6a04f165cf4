package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// pageDir has the page as it is embedded. make console builds it, and where npm is absent it builds none.
const pageDir = "internal/gateway/console/dist"

// page is what a release says of the page inside: one digest of it, the npm packages that it has code of, and their licences.
type page struct {
	digest   string
	licences []byte
	packages []npmPackage
}

// readPage reads the page that is built.
func readPage(dir, lock string) (p page, err error) {
	if p.digest, err = pageDigest(dir); err == nil {
		p.licences, p.packages, err = readPagePackages(dir, lock)
	}
	return p, err
}

// pageDigest returns one digest of all files of the page. A directory without a page is refused: the commit does not have it, so
// nothing else would say that the binaries lack it.
func pageDigest(dir string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, "index.html")); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s does not have the page that goes into the binary: build it by make console, which needs npm", dir)
	} else if err != nil {
		return "", err
	}
	h, files := sha256.New(), os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error { // in the order of names
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(h, "%x  %s\n", sha256.Sum256(data), name)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
