#include "store/s3/credentials.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>

#include "store/env/private_file.h"

namespace siltfs {
namespace {

constexpr size_t kMaxCredentialFileBytes = 1 << 20;

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Whether a value may stand in a header of a request.
bool IsHeaderText(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7F; });
}

Status CheckCredentials(const Credentials& credentials, const std::string& origin) {
  if (credentials.key_id.empty() || credentials.secret.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "the access key id and the secret access key must both be given")
        .At(origin);
  }
  // A slash would end the key id in the header of a request.
  if (!IsHeaderText(credentials.key_id) || !IsHeaderText(credentials.secret) ||
      !IsHeaderText(credentials.session_token) ||
      credentials.key_id.find_first_of("/,") != std::string::npos) {
    return Status(StatusCode::kInvalidArgument,
                  "the credentials contain a character that no credentials have")
        .At(origin);
  }
  return Status::Ok();
}

Result<std::shared_ptr<const Credentials>> ReadCredentialFile(const std::string& file,
                                                              const std::string& profile) {
  SILTFS_ASSIGN_OR_RETURN(std::string text, ReadPrivateFile(file, kMaxCredentialFileBytes));
  auto parsed = ParseCredentials(text, profile);
  WipeText(text);
  if (!parsed.ok()) return std::move(parsed).status().At(file);
  SILTFS_RETURN_IF_ERROR(CheckCredentials(*parsed, file));
  return std::make_shared<const Credentials>(std::move(*parsed));
}

std::string* FieldOf(Credentials& credentials, std::string_view name) {
  if (name == "aws_access_key_id") return &credentials.key_id;
  if (name == "aws_secret_access_key") return &credentials.secret;
  if (name == "aws_session_token" || name == "aws_security_token") {
    return &credentials.session_token;
  }
  return nullptr;
}

}  // namespace

void WipeText(std::string& text) {
  text.resize(text.capacity());
  OPENSSL_cleanse(text.data(), text.size());
  text.clear();
}

Credentials::~Credentials() {
  WipeText(key_id);
  WipeText(secret);
  WipeText(session_token);
}

std::string VariableOfProcess(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<Credentials> ParseCredentials(std::string_view text, std::string_view profile) {
  Credentials credentials;
  bool found = false;
  bool in_section = false;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      if (line.back() != ']') {
        return Status(StatusCode::kInvalidArgument,
                      "line " + std::to_string(number) + " begins a section without \"]\"");
      }
      in_section = Trim(line.substr(1, line.size() - 2)) == profile;
      found = found || in_section;
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return Status(StatusCode::kInvalidArgument,
                    "line " + std::to_string(number) + " has no \"=\" and begins no section");
    }
    if (!in_section) continue;
    std::string* const field = FieldOf(credentials, Trim(line.substr(0, equals)));
    if (field != nullptr) *field = Trim(line.substr(equals + 1));
  }
  if (!found) {
    return Status(StatusCode::kNotFound, "has no section [" + std::string(profile) +
                                             "]; the variable AWS_PROFILE chooses the section");
  }
  return credentials;
}

Result<std::unique_ptr<CredentialSource>> CredentialSource::Open(const std::string& file,
                                                                 const VariableLookup& variables) {
  const std::string path = file.empty() ? variables("SILTFS_BUCKET_CREDENTIALS") : file;
  if (!path.empty()) {
    std::string profile = variables("AWS_PROFILE");
    if (profile.empty()) profile = "default";
    SILTFS_ASSIGN_OR_RETURN(auto first, ReadCredentialFile(path, profile));
    return std::unique_ptr<CredentialSource>(
        new CredentialSource(path, profile, "the file " + path, std::move(first)));
  }
  const std::string origin = "the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
  Credentials credentials;
  credentials.key_id = variables("AWS_ACCESS_KEY_ID");
  credentials.secret = variables("AWS_SECRET_ACCESS_KEY");
  credentials.session_token = variables("AWS_SESSION_TOKEN");
  if (credentials.key_id.empty() && credentials.secret.empty()) {
    return Status(StatusCode::kAccessDenied,
                  "there are no credentials for the bucket; set AWS_ACCESS_KEY_ID and "
                  "AWS_SECRET_ACCESS_KEY, or name a file in SILTFS_BUCKET_CREDENTIALS");
  }
  SILTFS_RETURN_IF_ERROR(CheckCredentials(credentials, origin));
  return std::unique_ptr<CredentialSource>(new CredentialSource(
      "", "", origin, std::make_shared<const Credentials>(std::move(credentials))));
}

std::shared_ptr<const Credentials> CredentialSource::Current() const {
  MutexLock lock(mutex_);
  return current_;
}

Result<bool> CredentialSource::Renew(const Credentials& refused) {
  MutexLock lock(mutex_);
  // Another thread may have read the new ones already.
  if (!(*current_ == refused)) return true;
  if (file_.empty()) return false;
  SILTFS_ASSIGN_OR_RETURN(auto renewed, ReadCredentialFile(file_, profile_));
  current_ = std::move(renewed);
  return !(*current_ == refused);
}

}  // namespace siltfs
