package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is one of an archive.
type file struct {
	name string
	mode int64
	data []byte
}

// writeArchive writes files into a tar.gz, below one folder. The same files and time give the same bytes.
func writeArchive(path, folder string, at time.Time, files []file) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := archive(f, folder, at, files); err != nil {
		_ = f.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Close()
}

func archive(to io.Writer, folder string, at time.Time, files []file) error {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	// The header of gzip has neither name nor time: both would differ from build to build.
	zip, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(zip)
	for _, f := range files {
		// USTAR has no room for what a machine would add: times of access, names of users.
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)),
			ModTime: at.Truncate(time.Second), Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return zip.Close()
}

// writeSums writes SHA256SUMS over all files of a folder, as `sha256sum -c` reads it: the line that tells the page inside is a comment to that.
func writeSums(folder, page string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# the page inside: %s\n", page)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(text.String()), 0o644)
}
