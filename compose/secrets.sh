#!/bin/sh
# Makes what the services of docker-compose.yml know each other by: a password for each user of NATS and
# each account of ClickHouse, a certificate, a token for clients of the gateway. It is made once; remove the volumes secrets and accounts for others.
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
tls { cert_file: $out/tls.crt, key_file: $out/tls.key }
END
almanac config nats --server /data | sed 's/^  store_dir: .*/&\n  max_file_store: 50GB/' >> nats.conf
almanac config nats > users.conf
for user in $(sed -n 's/^ *user: //p' users.conf); do
  password=$(random)
  echo "ALMANAC_NATS_$(echo "$user" | tr '[:lower:]' '[:upper:]')_PASSWORD: \"$password\"" >> nats.conf
  echo "tls://$user:$password@nats:4222" > "nats-$user"
done
cat users.conf >> nats.conf
rm users.conf

# Of each account the server has a digest, and the parts that connect as it have the password.
{
  echo "<!-- The accounts of Almanac, with the digests of their passwords. -->"
  almanac config clickhouse | sed -e '1,/-->/d' -e 's|^  <users>$|&<default remove="remove"/>|'
} > accounts.xml
for key in $(sed -n 's/.*<password from_env="\([A-Z_]*\)".*/\1/p' accounts.xml); do
  password=$(random)
  account=$(echo "$key" | sed -e 's/^ALMANAC_CLICKHOUSE_//' -e 's/_PASSWORD$//' | tr '[:upper:]' '[:lower:]')
  digest=$(printf %s "$password" | sha256sum | cut -d ' ' -f 1)
  sed "s|<password from_env=\"$key\"/>|<password_sha256_hex>$digest</password_sha256_hex>|" accounts.xml > accounts.new
  mv accounts.new accounts.xml
  case $account in
    reader | gateway) echo "$account:$password" ;; # for SQL that people ask, and for what a gateway reads
    *) echo "http://$account:$password@clickhouse:8123/almanac" ;;
  esac > "clickhouse-$account"
done
cat accounts.xml > "$accounts/almanac.xml"
rm accounts.xml
chmod 644 "$accounts/almanac.xml" # digests: the server's user reads it
chmod 755 "$accounts"

almanac token add compose --tokens-file "$out/tokens.yaml" --write '*' --read '*' --sql --operate '*' > token
almanac token add prometheus --tokens-file "$out/tokens.yaml" --metrics > metrics-token
touch made
[ "$(id -u)" != 0 ] || chown -R 10001:10001 "$out"
