#include "tests/tools/process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace crucible::test {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void become_train(const std::vector<std::string>& arguments,
                               const std::filesystem::path& folder) {
  if (chdir(folder.c_str()) != 0) _exit(126);
  setenv("TERM", "xterm", 1);
  const char* other = std::getenv("CRUCIBLE_TRAIN_BINARY");
  const std::string binary = other ? other : TRAIN_BINARY;
  std::vector<char*> argv{const_cast<char*>(binary.c_str())};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  execv(binary.c_str(), argv.data());
  _exit(127);
}

void write_idx_file(const std::filesystem::path& path, const std::vector<uint32_t>& sizes,
                    const std::string& values) {
  std::ofstream file(path, std::ios::binary);
  file.write("\0\0\x08", 3).put(static_cast<char>(sizes.size()));
  for (const uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(size >> shift));
  }
  file << values;
}

}  // namespace

bool terminals_exist() {
  int master = -1, slave = -1;
  if (openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return false;
  close(master);
  close(slave);
  return true;
}

Running::Running(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                 Output output)
    : begin_(now()) {
  if (output == Output::terminal) {
    winsize size{};
    size.ws_col = 100;
    size.ws_row = 30;
    pid_ = forkpty(&out_, nullptr, nullptr, &size);
    if (pid_ == 0) become_train(arguments, folder);
    if (pid_ < 0) throw std::runtime_error("forkpty");  // and never kill(-1)
    return;
  }
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  pid_ = fork();
  if (pid_ == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    become_train(arguments, folder);
  }
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Running::~Running() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

void Running::send(int signal) const {
  kill(pid_, signal);
}

// Reads what has come; false when both streams have ended.
bool Running::pump(double seconds) {
  pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};  // a negative descriptor is passed over
  if (out_ < 0 && err_ < 0) return false;
  if (poll(fds, 2, static_cast<int>(seconds * 1000)) <= 0) return true;
  const auto take = [](const pollfd& fd, int& descriptor, std::string& to) {
    if (fd.revents == 0) return;
    char buffer[4096];
    const auto n = read(fd.fd, buffer, sizeof buffer);
    if (n > 0) {
      to.append(buffer, static_cast<size_t>(n));
    } else {
      close(descriptor);
      descriptor = -1;
    }
  };
  take(fds[0], out_, so_far_.out);
  take(fds[1], err_, so_far_.err);
  return true;
}

bool Running::wait_for(const std::string& text, double seconds) {
  const double end = now() + seconds;
  while (so_far_.out.find(text) == std::string::npos) {
    if (now() > end || !pump(0.05)) return false;
  }
  return true;
}

Finished Running::finish(double seconds) {
  const double end = now() + seconds;
  while (pump(0.05)) {
    if (now() > end) kill(pid_, SIGKILL);
  }
  int status = 0;
  rusage used{};
  wait4(pid_, &status, 0, &used);
  pid_ = -1;
  const auto seconds_of = [](const timeval& t) { return t.tv_sec + t.tv_usec * 1e-6; };
  so_far_.processor_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  so_far_.seconds = now() - begin_;
  so_far_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return so_far_;
}

Finished train(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  return Running(arguments, folder).finish();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "train-test-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(read_text(path));
}

std::vector<nlohmann::json> metrics(const std::filesystem::path& run, const std::string& type) {
  std::ifstream file(run / "metrics.jsonl");
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(file, line);) {
    nlohmann::json record = nlohmann::json::parse(line);
    if (type.empty() || record["type"] == type) records.push_back(std::move(record));
  }
  return records;
}

void write_idx(const std::filesystem::path& folder, int count) {
  std::filesystem::create_directories(folder);
  for (const auto& [split, n] : {std::pair{"train", count}, std::pair{"t10k", count / 2}}) {
    std::string pixels, labels;
    for (int i = 0; i < n; ++i) {
      labels.push_back(static_cast<char>(i % 4));
      for (int p = 0; p < 64; ++p) {
        pixels.push_back(static_cast<char>(p / 16 == i % 4 ? 200 + i % 50 : (p * 7 + i * 13) % 60));
      }
    }
    const std::string name = split;
    write_idx_file(folder / (name + "-images-idx3-ubyte"), {static_cast<uint32_t>(n), 8, 8},
                   pixels);
    write_idx_file(folder / (name + "-labels-idx1-ubyte"), {static_cast<uint32_t>(n)}, labels);
  }
}

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace crucible::test
