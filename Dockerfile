# An image whose command is `auditor`, for a user without rights, in the folder /work:
#
#   docker build --tag privacy-auditor .
#   docker run --rm --network none --user "$(id -u):$(id -g)" --volume "$PWD:/work" privacy-auditor audit losses.csv --html report.html
FROM python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254 AS build
COPY pyproject.toml README.md LICENSE requirements.lock.txt /source/
COPY .ci /source/.ci
COPY auditor /source/auditor
RUN PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1 bash /source/.ci/install /opt/auditor python

FROM python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254
COPY --from=build /opt/auditor /opt/auditor
RUN useradd --create-home --uid 10001 auditor
# Matplotlib keeps its list of fonts here, whoever runs the image.
ENV PATH=/opt/auditor/bin:$PATH MPLCONFIGDIR=/tmp/matplotlib
USER auditor
WORKDIR /work
ENTRYPOINT ["auditor"]
CMD ["--help"]
