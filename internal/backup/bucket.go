package backup

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// BucketConfig is where a bucket is, and who asks for it. The credentials are those of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN), else of the file that AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE name.
type BucketConfig struct {
	// URL is s3://bucket/prefix.
	URL string
	// Endpoint is the URL of the object store. Default: that of Amazon.
	Endpoint string
	Region   string
	CA       *x509.CertPool // nil: whom the system trusts

	who   *credentials.Credentials // nil: as above
	tries int                      // 0: attempts
}

const (
	// BucketScheme begins the URL of a bucket.
	BucketScheme = "s3://"

	amazon = "https://s3.amazonaws.com"

	// stallTimeout is how long a connection may neither take nor give a byte.
	stallTimeout = time.Minute
	// attempts bounds how often a request is sent, and how often a read goes on that stands still.
	attempts = 8
	// partBytes is how large the parts are in which a larger file goes up. S3 takes 10,000 of one file: 160 GiB.
	partBytes = 16 << 20
	// partsAtOnce bounds the memory of a file that goes up.
	partsAtOnce = 2
)

// Bucket is a part of a bucket of an object store that speaks S3.
type Bucket struct {
	name, prefix string
	core         minio.Core
	lease        leaseTimes
	tries        int
}

// OpenBucket prepares the use of a bucket. It asks nothing of it.
func OpenBucket(cfg BucketConfig) (*Bucket, error) {
	name, prefix, _ := strings.Cut(strings.TrimPrefix(cfg.URL, BucketScheme), "/")
	if err := s3utils.CheckValidBucketNameStrict(name); err != nil {
		return nil, fmt.Errorf("%q is not %sBUCKET/PREFIX: %w", cfg.URL, BucketScheme, err)
	}
	prefix = strings.Trim(prefix, "/")
	if prefix != "" && (path.Clean(prefix) != prefix || strings.HasPrefix(prefix, "..")) {
		return nil, fmt.Errorf(`%q: the prefix must have no part that is empty, "." or ".."`, cfg.URL)
	}
	lookup := minio.BucketLookupPath
	if cfg.Endpoint == "" {
		cfg.Endpoint, lookup = amazon, minio.BucketLookupAuto
	}
	u, err := url.Parse(cfg.Endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" {
		return nil, errors.New("the endpoint of an object store is a URL as https://host:port, without a path, a user or a bucket")
	}
	who := cfg.who
	if who == nil {
		who = credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
	}
	if v, err := who.GetWithContext(nil); err != nil || v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return nil, fmt.Errorf("no credentials for %s: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them into ~/.aws/credentials", cfg.URL)
	}
	cfg.tries = cmp.Or(cfg.tries, attempts)
	client, err := minio.New(u.Host, &minio.Options{
		Creds: who, Secure: u.Scheme == "https", Region: cfg.Region, BucketLookup: lookup, MaxRetries: cfg.tries, Transport: transport(cfg.CA),
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrObjectStore, err)
	}
	return &Bucket{name, prefix, minio.Core{Client: client}, usualLease, cfg.tries}, nil
}

// transport gives up on a server that stands still.
func transport(ca *x509.CertPool) http.RoundTripper {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return stalling{c}, nil
		},
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: ca},
		ForceAttemptHTTP2:   false,
		MaxIdleConnsPerHost: partsAtOnce + 1,
		IdleConnTimeout:     stallTimeout / 2,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  true,
	}
}

// stalling is a connection each of whose reads and writes has a deadline.
type stalling struct{ net.Conn }

func (c stalling) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c stalling) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// At is a file's URL.
func (b *Bucket) At(name string) string { return BucketScheme + path.Join(b.name, b.prefix, name) }

func (b *Bucket) far() bool { return true }

func (b *Bucket) key(name string) string { return path.Join(b.prefix, name) }

// failed says what became of a request.
func (b *Bucket) failed(what, name string, err error) error {
	var answer minio.ErrorResponse
	at := b.At(name)
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &answer):
		return fmt.Errorf("%w: %s %s: %w", ErrObjectStore, what, at, err)
	case answer.Code == minio.NoSuchBucket:
		return fmt.Errorf("%w: %s %s: there is no bucket %s: make it first", ErrObjectStore, what, at, b.name)
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s %s: %w", ErrObjectStore, what, at, fs.ErrNotExist)
	case answer.StatusCode == http.StatusForbidden, answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%w: %s %s: it refuses these credentials (%s): they must be allowed to list, read, write and delete there",
			ErrObjectStore, what, at, answer.Code)
	}
	return fmt.Errorf("%w: %s %s: %s (%d %s)", ErrObjectStore, what, at, strings.TrimSuffix(answer.Message, "."), answer.StatusCode, answer.Code)
}

// put sends a file with its MD5 digest, by which the object store refuses bytes that were changed on the way. A larger one goes in parts, and is
// there once the last of them is.
func (b *Bucket) put(ctx context.Context, name string, body io.ReadSeeker, size int64) error {
	_, err := b.core.Client.PutObject(ctx, b.name, b.key(name), body, size, minio.PutObjectOptions{
		PartSize: partBytes, NumThreads: partsAtOnce, SendContentMd5: true, ContentType: "application/octet-stream",
	})
	return b.failed("writing", name, err)
}

func (b *Bucket) list(ctx context.Context, folder string, deep bool, f func(name string, size int64)) error {
	prefix := b.key(folder)
	if prefix != "" {
		prefix += "/"
	}
	for o := range b.core.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: deep}) {
		if o.Err != nil {
			return b.failed("listing", folder, o.Err)
		}
		if name := strings.TrimPrefix(strings.TrimPrefix(o.Key, b.prefix), "/"); !strings.HasSuffix(name, "/") {
			f(name, o.Size)
		}
	}
	return ctx.Err()
}

func (b *Bucket) remove(ctx context.Context, name string) error {
	return b.failed("removing", name, b.core.RemoveObject(ctx, b.name, b.key(name), minio.RemoveObjectOptions{}))
}

// sweepParts removes what a killed process sent of files that did not come whole.
func (b *Bucket) sweepParts(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for u := range b.core.ListIncompleteUploads(ctx, b.name, b.key(objectsDir)+"/", true) {
		if err := u.Err; err != nil {
			if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound { // some say so where there is none
				return nil
			}
			return b.failed("listing unfinished files below", objectsDir, err)
		}
		if err := b.core.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID); err != nil && minio.ToErrorResponse(err).StatusCode != http.StatusNotFound {
			return b.failed("removing an unfinished file below", objectsDir, err)
		}
	}
	return nil
}
