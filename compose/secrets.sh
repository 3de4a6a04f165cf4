#!/bin/sh
# Makes what the services of docker-compose.yml know each other by: a password for each user of NATS and for
# the one of ClickHouse, a certificate, a token for clients of the gateway. It is made once; remove the volumes secrets and accounts for others.
set -eu
umask 077
out=${OUT:-/run/almanac}
accounts=${ACCOUNTS:-/run/accounts}
[ ! -e "$out/made" ] || exit 0
cd "$out"

random() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

# Each client trusts this certificate alone.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=almanac \
  -addext subjectAltName=DNS:nats,DNS:gateway,DNS:localhost,IP:127.0.0.1 -keyout tls.key -out tls.crt 2>/dev/null

cat > nats.conf <<END
server_name: almanac
listen: 0.0.0.0:4222
http: 127.0.0.1:8222
max_payload: 1MB
tls { cert_file: $out/tls.crt, key_file: $out/tls.key }
jetstream {
  store_dir: /data
  # What is acknowledged is on disk. Almanac publishes frames, so it can afford it.
  sync_interval: always
  max_file_store: 50GB
}
END
almanac config nats > users.conf
for user in $(sed -n 's/^ *user: //p' users.conf); do
  password=$(random)
  echo "ALMANAC_NATS_$(echo "$user" | tr '[:lower:]' '[:upper:]')_PASSWORD: \"$password\"" >> nats.conf
  echo "tls://$user:$password@nats:4222" > "nats-$user"
done
cat users.conf >> nats.conf
rm users.conf

password=$(random)
echo "http://almanac:$password@clickhouse:8123/almanac" > clickhouse
cat > "$accounts/almanac.xml" <<END
<clickhouse>
  <users>
    <default remove="remove"/>
    <almanac>
      <password_sha256_hex>$(printf %s "$password" | sha256sum | cut -d ' ' -f 1)</password_sha256_hex>
      <networks><ip>::/0</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
    </almanac>
  </users>
</clickhouse>
END
chmod 644 "$accounts/almanac.xml" # digests: the server's user reads it
chmod 755 "$accounts"

almanac token add compose --tokens-file "$out/tokens.yaml" --write '*' --read '*' --sql --operate '*' > token
touch made
[ "$(id -u)" != 0 ] || chown -R 10001:10001 "$out"
