// LivePage: the report page of a run that goes on. Looks at the run file about once a second, only while somebody has
// the page open, from a copy: the writer waits some milliseconds for the copying and for nothing else.
//
//   /TOKEN/          the page          /TOKEN/events    server-sent events: "news", and "over" at the end
//   /TOKEN/data      the document      /TOKEN/metrics   OpenMetrics
#pragma once
#include <memory>
#include <string>

namespace millpond::serve {

class LivePage {
 public:
  /// `file` is or will be a run file. Throws Error(kFile) when there is no port.
  explicit LivePage(std::string file);
  ~LivePage();

  std::string address() const;
  /// The run is over and its file whole: whoever has the page open is told so and gets the end of it. True: somebody
  /// has. Then one of the two below.
  bool end();
  /// The server goes as soon as readers have the end, after two seconds at most; at once without readers.
  void finish();
  /// The page can be loaded again while it is open: the server goes when it was closed for `grace` seconds, after an
  /// hour at most.
  void stay(double grace = 5);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millpond::serve
