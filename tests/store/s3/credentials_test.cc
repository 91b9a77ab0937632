#include "store/s3/credentials.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "store/env/private_file.h"
#include "tests/store/s3/s3_test_support.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

void WriteFile(const std::string& path, std::string_view text, mode_t mode = 0600) {
  std::ofstream(path) << text;
  REQUIRE(chmod(path.c_str(), mode) == 0);
}

constexpr std::string_view kFile =
    "# keys\n[default]\naws_access_key_id = ID\naws_secret_access_key=se/cr+et=\n"
    "region = eu\n\n[ other ]\r\naws_access_key_id=ID2\r\naws_secret_access_key = secret2\r\n"
    "aws_session_token = token2\r\n";

TEST_CASE("files of credentials are read by section") {
  auto credentials = ParseCredentials(kFile, "default");
  REQUIRE_OK(credentials);
  CHECK(credentials->key_id == "ID");
  CHECK(credentials->secret == "se/cr+et=");
  CHECK(credentials->session_token.empty());
  auto other = ParseCredentials(kFile, "other");
  REQUIRE_OK(other);
  CHECK(other->key_id == "ID2");
  CHECK(other->secret == "secret2");
  CHECK(other->session_token == "token2");
}

TEST_CASE("malformed files of credentials are refused without a word of their text") {
  const auto missing = ParseCredentials(kFile, "none");
  REQUIRE_CODE(missing, kNotFound);
  CHECK(missing.status().ToString().find("[none]") != std::string::npos);
  for (const char* text : {"[default\naws_secret_access_key = verysecret\n",
                           "[default]\naws_secret_access_key verysecret\n"}) {
    const auto parsed = ParseCredentials(text, "default");
    REQUIRE_CODE(parsed, kInvalidArgument);
    CHECK(parsed.status().ToString().find("line ") != std::string::npos);
    CHECK(parsed.status().ToString().find("verysecret") == std::string::npos);
  }
}

TEST_CASE("credentials come from a file or from variables, in this order") {
  const TemporaryDirectory directory;
  const std::string file = directory / "file";
  WriteFile(file, kFile);
  const std::string second = directory / "second";
  WriteFile(second, "[default]\naws_access_key_id = ID3\naws_secret_access_key = secret3\n");
  Variables variables = {{"AWS_ACCESS_KEY_ID", "ID4"},
                         {"AWS_SECRET_ACCESS_KEY", "secret4"},
                         {"AWS_SESSION_TOKEN", "token4"}};
  const auto key_id = [&](const std::string& option) {
    auto source = CredentialSource::Open(option, LookupIn(variables));
    REQUIRE_OK(source);
    return (*source)->Current()->key_id;
  };
  CHECK(key_id("") == "ID4");
  CHECK(key_id(file) == "ID");
  variables["SILTFS_BUCKET_CREDENTIALS"] = second;
  CHECK(key_id("") == "ID3");
  CHECK(key_id(file) == "ID");
  variables["AWS_PROFILE"] = "other";
  CHECK(key_id(file) == "ID2");
}

TEST_CASE("missing and unusable credentials are refused") {
  const auto open = [](Variables variables) {
    return CredentialSource::Open("", LookupIn(std::move(variables)));
  };
  const auto none = open({});
  REQUIRE_CODE(none, kAccessDenied);
  CHECK(none.status().ToString().find("AWS_ACCESS_KEY_ID") != std::string::npos);
  for (const Variables& variables :
       {Variables{{"AWS_ACCESS_KEY_ID", "ID"}}, Variables{{"AWS_SECRET_ACCESS_KEY", "verysecret"}},
        Variables{{"AWS_ACCESS_KEY_ID", "I/D"}, {"AWS_SECRET_ACCESS_KEY", "verysecret"}},
        Variables{{"AWS_ACCESS_KEY_ID", "ID"}, {"AWS_SECRET_ACCESS_KEY", "verysecret\r\nx: y"}},
        Variables{{"AWS_ACCESS_KEY_ID", "ID"},
                  {"AWS_SECRET_ACCESS_KEY", "verysecret"},
                  {"AWS_SESSION_TOKEN", "a b"}}}) {
    const auto opened = open(variables);
    REQUIRE_CODE(opened, kInvalidArgument);
    CHECK(opened.status().ToString().find("verysecret") == std::string::npos);
  }
}

TEST_CASE("a file of credentials must be private") {
  const TemporaryDirectory directory;
  const std::string file = directory / "file";
  WriteFile(file, kFile);
  REQUIRE_OK(ReadPrivateFile(file, 1000));
  REQUIRE(chmod(file.c_str(), 0400) == 0);
  REQUIRE_OK(ReadPrivateFile(file, 1000));
  for (const mode_t mode : {0640, 0604, 0620, 0601, 0660}) {
    REQUIRE(chmod(file.c_str(), mode) == 0);
    const auto read = ReadPrivateFile(file, 1000);
    REQUIRE_CODE(read, kAccessDenied);
    CHECK(read.status().ToString().find("chmod 600 " + file) != std::string::npos);
    REQUIRE_CODE(CredentialSource::Open(file, LookupIn({})), kAccessDenied);
  }
  REQUIRE(chmod(file.c_str(), 0600) == 0);
  REQUIRE_CODE(ReadPrivateFile(file, kFile.size() - 1), kFileTooLarge);
  REQUIRE_CODE(ReadPrivateFile(directory / "none", 1000), kNotFound);
  REQUIRE_CODE(ReadPrivateFile(directory.path(), 1000), kAccessDenied);
  REQUIRE(mkfifo((directory / "fifo").c_str(), 0600) == 0);
  REQUIRE_CODE(ReadPrivateFile(directory / "fifo", 1000), kAccessDenied);
  if (geteuid() == 0) {
    REQUIRE(chown(file.c_str(), 1, 1) == 0);
    const auto read = ReadPrivateFile(file, 1000);
    REQUIRE_CODE(read, kAccessDenied);
    CHECK(read.status().ToString().find("belongs to user 1") != std::string::npos);
  }
}

TEST_CASE("refused credentials are read again from their file") {
  const TemporaryDirectory directory;
  const std::string file = directory / "file";
  WriteFile(file, kFile);
  auto source = CredentialSource::Open(file, LookupIn({}));
  REQUIRE_OK(source);
  const auto before = (*source)->Current();
  auto renewed = (*source)->Renew(*before);
  REQUIRE_OK(renewed);
  CHECK_FALSE(*renewed);
  WriteFile(file, "[default]\naws_access_key_id = NEW\naws_secret_access_key = new\n");
  renewed = (*source)->Renew(*before);
  REQUIRE_OK(renewed);
  CHECK(*renewed);
  CHECK((*source)->Current()->key_id == "NEW");
  // Requests that use the old ones are not disturbed.
  CHECK(before->key_id == "ID");
  // A second thread with the old ones learns that there are new ones.
  renewed = (*source)->Renew(*before);
  REQUIRE_OK(renewed);
  CHECK(*renewed);
  REQUIRE(unlink(file.c_str()) == 0);
  REQUIRE_CODE((*source)->Renew(*(*source)->Current()), kNotFound);
}

TEST_CASE("wiped texts are overwritten and empty") {
  std::string text(100, 's');
  const char* const bytes = text.data();
  WipeText(text);
  CHECK(text.empty());
  CHECK(bytes[0] == '\0');
  CHECK(std::count(bytes, bytes + 100, 's') == 0);
}

}  // namespace
}  // namespace siltfs::testing
