// One request on its way through libcurl: the callbacks that feed it and take its reply. For
// http_client.cc only.
//
// Thread-safety: one thread at a time. The request and the sink must outlive the exchange.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <string>

#include "store/s3/http_client.h"

namespace siltfs {

class HttpClient::Exchange {
 public:
  Exchange(const HttpRequest& request, const HttpSink& sink) : request_(request), sink_(sink) {}
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Sets all options of the handle. False if libcurl refuses one.
  bool Prepare(CURL* easy, const Options& options);
  // Judges how the transfer ended.
  void Finish(CURLcode code);
  void Fail(HttpFailure failure, std::string cause);

  uint64_t transferred_bytes() const { return transferred_; }
  HttpResult& result() { return result_; }

 private:
  static size_t OnHeader(char* text, size_t size, size_t count, void* exchange);
  static size_t OnBody(char* bytes, size_t size, size_t count, void* exchange);
  static size_t OnRead(char* bytes, size_t size, size_t count, void* exchange);
  static int OnSeek(void* exchange, curl_off_t offset, int origin);

  bool PrepareBody(CURL* easy);
  void TakeHeader(std::string_view line);
  bool TakeBody(ByteView piece);
  size_t GiveBody(MutableByteView out);

  const HttpRequest& request_;
  const HttpSink& sink_;
  curl_slist* headers_ = nullptr;
  uint64_t offset_ = 0;       // of the body that is sent
  uint64_t transferred_ = 0;  // in both directions
  size_t header_bytes_ = 0;
  bool refused_ = false;
  char error_text_[CURL_ERROR_SIZE] = {};
  HttpResult result_;
};

}  // namespace siltfs
