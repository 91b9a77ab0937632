// Requests that the service refuses finally, and what the user reads; credentials, certificates and
// keys with special characters.
#include <cstdlib>
#include <tuple>

#include "store/env/files.h"
#include "store/object/object_store_probe.h"
#include "tests/store/s3/s3_test_support.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

TEST_CASE("final refusals are not repeated, and say what to do") {
  struct Refusal {
    const char* reply;
    StatusCode code;
    const char* sentence;
  };
  const Refusal refusals[] = {
      {R"("status": 403, "code": "AccessDenied")", StatusCode::kAccessDenied,
       "lack the permission"},
      {R"("status": 403, "code": "InvalidAccessKeyId")", StatusCode::kAccessDenied,
       "does not know the access key"},
      {R"("status": 403, "code": "SignatureDoesNotMatch")", StatusCode::kAccessDenied,
       "the secret access key does not belong to the access key id"},
      {R"("status": 400, "code": "ExpiredToken")", StatusCode::kAccessDenied,
       "the session token has expired; get new credentials"},
      {R"("status": 403, "code": "InvalidTokenId")", StatusCode::kAccessDenied,
       "does not accept the session token"},
      {R"("status": 400, "code": "AuthorizationHeaderMalformed")", StatusCode::kAccessDenied,
       "not in the region us-east-1; set AWS_REGION"},
      {R"("status": 507, "code": "XMinioStorageFull")", StatusCode::kNoSpace, "the bucket is full"},
      {R"("status": 403, "code": "QuotaExceeded")", StatusCode::kNoSpace, "the bucket is full"},
      {R"("status": 400, "code": "InvalidArgument", "message": "no such thing")",
       StatusCode::kIoError, "refused the request: 400 InvalidArgument: no such thing"},
      {R"("status": 501, "code": "NotImplemented")", StatusCode::kIoError,
       "refused the request: 501 NotImplemented"},
      {R"("status": 404, "code": "NoSuchBucket")", StatusCode::kNotFound,
       "there is no bucket \"bucket\" at http://127.0.0.1:"},
  };
  Fixture fixture;
  for (const Refusal& refusal : refusals) {
    INFO(refusal.reply);
    fixture.Fault(std::string(R"({"times": 2, "fault": "status", )") + refusal.reply + "}");
    const auto put = fixture.store->Put("b", fixture.content, kAlways);
    REQUIRE(put.status().code() == refusal.code);
    CheckText(put.status(), refusal.sentence);
    CHECK(put.status().ToString().find("test-secret") == std::string::npos);
    // HEAD has no body that says why, so Stat asks again with GET.
    fixture.Fault(R"({"heal": true})");
    fixture.Fault(std::string(R"({"times": 2, "fault": "status", )") + refusal.reply + "}");
    const auto stat = fixture.store->Stat("b");
    if (stat.status().Is(StatusCode::kIoError)) {
      fixture.Fault(R"({"heal": true})");
      continue;
    }
    CHECK(stat.status().code() == refusal.code);
    fixture.Fault(R"({"heal": true})");
  }
  CHECK(fixture.waits.size() <= 4);  // of HEAD with 5xx, which has no cause
}

TEST_CASE("a wrong clock is named with its skew") {
  Fixture fixture;
  fixture.server.Control(R"({"clock": 3600})");
  const auto stat = fixture.store->Stat("a");
  REQUIRE_CODE(stat, kAccessDenied);
  const std::string text = stat.status().ToString();
  // The two clocks may tick between the reply and its examination.
  const bool exact = text.find("3600 seconds behind") != std::string::npos ||
                     text.find("3599 seconds behind") != std::string::npos ||
                     text.find("3601 seconds behind") != std::string::npos;
  INFO(text);
  CHECK(exact);
  CheckText(stat.status(), "the clock of this machine is");
  fixture.server.Control(R"({"clock": -3600})");
  const auto put = fixture.store->Put("b", {}, kAlways);
  REQUIRE_CODE(put, kAccessDenied);
  CheckText(put.status(), "seconds ahead of that of http://127.0.0.1:");
}

TEST_CASE("a missing bucket is told from a missing object") {
  Fixture fixture;
  fixture.server.Control(R"({"bucket": "another"})");
  Bytes out(10);
  const Status failures[] = {fixture.store->Stat("a").status(),
                             fixture.store->Get("a", 100, nullptr).status(),
                             fixture.store->Read("a", fixture.version, 0, out).status(),
                             fixture.store->List("", "", 10).status(),
                             fixture.store->Remove("a"),
                             fixture.store->Put("a", {}, PutCondition::IfVersion("x")).status()};
  for (const Status& failure : failures) {
    CHECK(failure.code() == StatusCode::kNotFound);
    CheckText(failure, "there is no bucket \"bucket\"");
  }
}

TEST_CASE("a wrong secret is refused by the service") {
  Fixture fixture;
  fixture.server.Control(R"({"secret": "another"})");
  const auto put = fixture.store->Put("b", {}, kAlways);
  REQUIRE_CODE(put, kAccessDenied);
  CheckText(put.status(), "the secret access key does not belong");
  CheckText(put.status(), "AWS_SECRET_ACCESS_KEY");
}

TEST_CASE("expired credentials are read again from their file, once") {
  Fixture fixture;
  const TemporaryDirectory directory;
  const std::string file = directory / "credentials";
  const auto write = [&](const std::string& token) {
    REQUIRE_OK(ReplaceFile(fixture.env, file,
                           AsBytes("[default]\naws_access_key_id=test-key\n"
                                   "aws_secret_access_key=test-secret\naws_session_token=" +
                                   token + "\n")));
    std::ignore = std::system(("chmod 600 " + file).c_str());
  };
  write("first");
  fixture.server.Control(R"({"token": "first"})");
  S3Options options = TestOptions(fixture.env, fixture.server);
  options.credentials_file = file;
  fixture.Open(options);
  fixture.server.Control(R"({"token": "second"})");
  const auto refused = fixture.store->Put("b", {}, kAlways);
  REQUIRE_CODE(refused, kAccessDenied);
  CheckText(refused.status(), "the session token has expired");
  CheckText(refused.status(), file);
  write("second");
  REQUIRE_OK(fixture.store->Put("b", {}, PutCondition::IfAbsent()));
  REQUIRE_OK(fixture.store->Stat("b"));
}

TEST_CASE("no failure of a request shows the secret or the session token") {
  Fixture fixture;
  fixture.server.Control(R"({"token": "test-token"})");
  S3Options options = TestOptions(fixture.env, fixture.server);
  Variables variables = TestVariables();
  variables["AWS_SESSION_TOKEN"] = "test-token";
  options.variables = LookupIn(variables);
  fixture.Open(options);
  ObjectStore& store = *fixture.store;
  const auto check = [](const Status& failed) {
    INFO(failed.ToString());
    CHECK_FALSE(failed.ok());
    CHECK(failed.ToString().find("test-secret") == std::string::npos);
    CHECK(failed.ToString().find("test-token") == std::string::npos);
  };
  const auto check_reads = [&] {
    Bytes out(100);
    check(store.Get("a", 1 << 20, nullptr).status());
    check(store.Read("a", fixture.version, 50, out).status());
  };
  for (const char* fault :
       {R"("status", "status": 503, "code": "SlowDown")",
        R"("status", "status": 403, "code": "AccessDenied")",
        R"("status", "status": 403, "code": "SignatureDoesNotMatch")",
        R"("status", "status": 400, "code": "ExpiredToken")",
        R"("status", "status": 400, "code": "InvalidArgument")",
        R"("status", "status": 507, "code": "InsufficientStorage")", R"("reset")", R"("html")"}) {
    INFO(fault);
    fixture.Fault(std::string(R"({"times": 100000, "fault": )") + fault + "}");
    check(store.Put("b", fixture.content, PutCondition::IfAbsent()).status());
    check(store.Stat("a").status());
    check(store.List("", "", 10).status());
    check(store.Remove("a"));
    check_reads();
    fixture.Fault(R"({"heal": true})");
  }
  for (const char* fault : {"long", "truncate"}) {
    INFO(fault);
    fixture.Fault(std::string(R"({"times": 100000, "on": "GET", "fault": ")") + fault + "\"}");
    check_reads();
    fixture.Fault(R"({"heal": true})");
  }
  fixture.server.Stop();
  check(store.Put("b", {}, kAlways).status());
  check_reads();
}

TEST_CASE("keys with special characters are stored and listed") {
  Fixture fixture;
  const std::vector<std::string> keys = {" ",
                                         "%41",
                                         "&amp;",
                                         "+",
                                         "a/../b",
                                         "a//b",
                                         "b?c=d",
                                         "c#d",
                                         "d\"<>'",
                                         "e\\f",
                                         "f\xC3\xA4\xF0\x9F\x98\x80",
                                         "~!*()"};
  for (const std::string& key : keys) REQUIRE_OK(fixture.store->Put(key, AsBytes(key), kAlways));
  REQUIRE_OK(fixture.store->Remove("a"));
  auto page = fixture.store->List("", "", 100);
  REQUIRE_OK(page);
  std::vector<std::string> found;
  for (const ObjectInfo& object : page->objects) found.push_back(object.key);
  CHECK(found == keys);
  for (const std::string& key : keys) {
    auto got = fixture.store->Get(key, 100, nullptr);
    REQUIRE_OK(got);
    CHECK(AsText(*got) == key);
  }
}

TEST_CASE("an untrusted certificate is refused, and a trusted one accepted") {
  const TemporaryDirectory directory;
  const std::string certificate = directory / "certificate.pem";
  const std::string command =
      "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test "
      "-addext subjectAltName=IP:127.0.0.1 -keyout " +
      certificate + ".key -out " + certificate + ".crt 2>/dev/null && cat " + certificate +
      ".key " + certificate + ".crt >" + certificate;
  REQUIRE(std::system(command.c_str()) == 0);
  S3Server server({"--certificate", certificate});
  ClockEnv env;
  S3Options options = TestOptions(env, server);
  options.endpoint->tls = true;
  const auto refused = OpenStore(env, options)->Put("a", {}, kAlways);
  REQUIRE_CODE(refused, kIoError);
  CheckText(refused.status(), "the certificate of https://127.0.0.1:");
  CHECK(refused.status().ToString().find("attempts") == std::string::npos);
  options.ca_file = certificate + ".crt";
  auto store = OpenStore(env, options);
  REQUIRE_OK(store->Put("a", {}, kAlways));
  REQUIRE_OK(store->Stat("a"));
}

TEST_CASE("services that ignore conditions are recognised") {
  ClockEnv env;
  const auto probe = [&](const std::vector<std::string>& arguments) {
    S3Server server(arguments);
    return ProbeObjectStore(*OpenStore(env, TestOptions(env, server)), "probe");
  };
  REQUIRE_OK(probe({}));
  for (const char* header : {"if-none-match", "if-match"}) {
    const Status ignored = probe({"--ignore", header});
    REQUIRE_CODE(ignored, kUnsupported);
    CheckText(ignored, "although If-");
    CheckText(ignored, "s3://bucket/");
  }
  // An object that exists is not touched.
  Fixture fixture;
  REQUIRE_CODE(ProbeObjectStore(*fixture.store, "a"), kAlreadyExists);
  auto content = fixture.store->Get("a", 1 << 20, nullptr);
  REQUIRE_OK(content);
  CHECK((*content == fixture.content));
}

TEST_CASE("a proxy is used if the environment names one, except for the hosts in no_proxy") {
  S3Server server;
  ClockEnv env;
  S3Options options = TestOptions(env, server);
  options.endpoint = Endpoint{.tls = false, .host = "behind.a.proxy.invalid", .port = 0};
  auto store = OpenStore(env, options);
  REQUIRE(setenv("http_proxy", ("http://" + server.authority()).c_str(), 1) == 0);
  const auto through_proxy = store->Put("a", AsBytes("content"), kAlways);
  REQUIRE(setenv("no_proxy", "behind.a.proxy.invalid", 1) == 0);
  const auto directly = store->Stat("a");
  REQUIRE(unsetenv("http_proxy") == 0);
  REQUIRE(unsetenv("no_proxy") == 0);
  REQUIRE_OK(through_proxy);
  REQUIRE_CODE(directly, kIoError);
}

TEST_CASE("options that cannot work are refused") {
  ClockEnv env;
  S3Options options;
  options.address.bucket = "bucket";
  options.variables = LookupIn({});
  REQUIRE_CODE(S3ObjectStore::Open(env, options), kAccessDenied);
  options.variables = LookupIn(TestVariables());
  options.region = "eu\r\nx: y";
  REQUIRE_CODE(S3ObjectStore::Open(env, options), kInvalidArgument);
  options.region = "";
  options.endpoint = Endpoint{.tls = false, .host = "[::1]", .port = 9000};
  options.place = BucketPlace::kHost;
  REQUIRE_CODE(S3ObjectStore::Open(env, options), kInvalidArgument);
}

}  // namespace
}  // namespace siltfs::testing
