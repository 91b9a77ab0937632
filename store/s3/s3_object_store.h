// An ObjectStore on a service that speaks the protocol of S3: Amazon S3, MinIO, Ceph RGW and
// others. The service must support conditional PUTs (If-None-Match, If-Match);
// ProbeObjectStore finds out whether it does.
//
// Requests are signed (store/s3/signature.h). A body is sent with its SHA-256, which is part of the
// signature and which services verify, and is read twice for it: it is never in memory as a whole.
// With each object, two values are stored as metadata:
//
//   x-amz-meta-siltfs-checksum   XXH3 of the content, which Get verifies. Tools that copy objects
//                                may lose it; such objects are not verified.
//   x-amz-meta-siltfs-put        a random number for each call of Put. If the service refuses a
//                                conditional Put because the object exists or has changed, the call
//                                compares this number: an earlier attempt, whose answer was lost,
//                                may have succeeded.
//
// Limits: an attempt whose answer was lost may take effect late, after a later Put of the same key.
// Only conditional Puts are safe from this. If the answer to a Put with kIfVersion was lost and the
// object has yet another version now, another client may have replaced it after this Put: the call
// returns kIoError, because the outcome is unknown. A Put with kIfAbsent returns kAlreadyExists
// then.
//
// A call is repeated until its deadline after failures that may pass: broken connections, stalls,
// 5xx, 429, malformed replies. Other refusals are final. If the service refuses the credentials,
// they are read again from their file.
//
// Memory: about 1 MiB for each call that runs at the same time, whatever the size of the object;
// Get also has the object.
//
// Thread-safety: every call from any thread. A process must not fork while a store is open in it,
// except to start another program.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "store/env/env.h"
#include "store/object/object_store.h"
#include "store/s3/s3_client.h"
#include "store/s3/s3_options.h"

namespace siltfs {

class S3ObjectStore final : public ObjectStore {
 public:
  // Sends nothing yet. `env` gives time and randomness, and must outlive the store.
  // kAccessDenied and kInvalidArgument: those of CredentialSource::Open, and a malformed region.
  static Result<std::unique_ptr<S3ObjectStore>> Open(Env& env, S3Options options);

  const std::string& name() const override { return name_; }
  Result<std::string> PutFile(const std::string& key, const ReadableFile& content,
                              const PutCondition& condition) override;
  Result<std::string> Put(const std::string& key, ByteView content,
                          const PutCondition& condition) override;
  Result<Bytes> Get(const std::string& key, uint64_t limit, std::string* version) override;
  Result<size_t> Read(const std::string& key, std::string_view version, uint64_t offset,
                      MutableByteView out) override;
  Result<ObjectInfo> Stat(const std::string& key) override;
  Status Remove(const std::string& key) override;
  Result<ObjectPage> List(const std::string& prefix, const std::string& after,
                          size_t limit) override;
  void Interrupt() override { client_->Interrupt(); }
  void InterruptReads() override { client_->InterruptReads(); }
  ObjectStoreCounters Counters() const override { return client_->Counters(); }

 private:
  struct Head {
    ObjectInfo info;
    std::string put;  // the random number of its Put; may be empty
  };

  explicit S3ObjectStore(std::unique_ptr<S3Client> client);

  Result<std::string> PutOnce(const std::string& key, const ReadableFile& content,
                              const PutCondition& condition);
  S3Outcome SendPut(const S3Request& request, std::string& version);
  std::string EtagOfCondition(const std::string& version) const;
  bool NeedsPlainEtag(const std::string& key, const PutCondition& condition);
  Result<Bytes> GetOnce(const std::string& key, uint64_t limit, std::string* version);
  Result<size_t> ReadOnce(const std::string& key, std::string_view version, uint64_t offset,
                          MutableByteView out);
  Result<Head> FindHead(const std::string& key);
  static S3Verdict JudgeHead(const HttpReply& reply, const std::string& key, Head& head);
  Status ExplainHead(const std::string& key);
  Result<std::string> Resolve(const std::string& key, const std::string& put, Status refusal);
  Status RemoveOnce(const std::string& key);
  Result<ObjectPage> ListOnce(const std::string& prefix, const std::string& after, size_t limit);

  // Adds the object to the failure and counts it.
  Status Failed(Status status, const std::string& key) const;
  Status Failed(Status status, const std::string& key, uint64_t offset) const;

  const std::unique_ptr<S3Client> client_;
  const std::string name_;
  const std::string key_prefix_;
  // Whether If-Match of a Put has the ETag without quotes, because the service needs it.
  std::atomic<bool> plain_etags_ = false;
};

}  // namespace siltfs
