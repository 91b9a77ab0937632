// The credentials for requests to a bucket, and the places that they come from. In this order:
//
//   1. the file of an option, or of the variable SILTFS_BUCKET_CREDENTIALS: an INI file like
//      ~/.aws/credentials. The section is that of the variable AWS_PROFILE, or "default".
//   2. the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
//
// Metadata services of clouds are not asked, and ~/.aws is not searched.
//
// Credentials never appear in messages. Memory that held them is overwritten when it is freed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// Overwrites the text, its unused memory included, and empties it.
void WipeText(std::string& text);

struct Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;  // may be empty

  Credentials() = default;
  Credentials(const Credentials&) = default;
  Credentials(Credentials&&) noexcept = default;
  Credentials& operator=(const Credentials&) = delete;
  ~Credentials();

  bool operator==(const Credentials&) const = default;
};

// The value of an environment variable; empty if there is none.
using VariableLookup = std::function<std::string(const char* name)>;
std::string VariableOfProcess(const char* name);

// Credentials in the text of a file like ~/.aws/credentials. kInvalidArgument with the number of
// the line, but without its text; kNotFound if there is no such section.
Result<Credentials> ParseCredentials(std::string_view text, std::string_view profile);

// Thread-safety: every call from any thread.
class CredentialSource {
 public:
  // Reads the credentials. `file` may be empty. kAccessDenied if there are none, or if other users
  // may read the file; kInvalidArgument if they are malformed.
  static Result<std::unique_ptr<CredentialSource>> Open(const std::string& file,
                                                        const VariableLookup& variables);

  std::shared_ptr<const Credentials> Current() const SILTFS_EXCLUDES(mutex_);
  // Reads the file again, because the service refused `refused`. Returns whether the current
  // credentials differ from them now. Credentials from variables never change.
  Result<bool> Renew(const Credentials& refused) SILTFS_EXCLUDES(mutex_);

  // Where the credentials come from, for messages.
  const std::string& origin() const { return origin_; }

 private:
  CredentialSource(std::string file, std::string profile, std::string origin,
                   std::shared_ptr<const Credentials> first)
      : file_(std::move(file)),
        profile_(std::move(profile)),
        origin_(std::move(origin)),
        current_(std::move(first)) {}

  const std::string file_;  // empty: from variables
  const std::string profile_;
  const std::string origin_;
  mutable Mutex mutex_;
  std::shared_ptr<const Credentials> current_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
