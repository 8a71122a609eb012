# One image for every role: `web`, `gateway`, `worker`, `beat`, `migrate` (see docker/role). See docs/operations/deployment.md.

FROM python:3.11-slim-bookworm AS build
RUN pip install --no-cache-dir 'uv>=0.8,<1'
ENV UV_PROJECT_ENVIRONMENT=/opt/venv UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
WORKDIR /app
# The dependencies have a separate layer, because they change less often than the code.
COPY pyproject.toml uv.lock ./
RUN --mount=type=cache,target=/root/.cache/uv uv sync --frozen --no-dev
COPY . .
# If the folder exists, static files are compressed and get hashed names.
RUN mkdir staticfiles \
    && /opt/venv/bin/python manage.py collectstatic --noinput \
    && /opt/venv/bin/python -m compileall -q .

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --create-home contextapp && install --directory --owner contextapp --mode 700 /data /spool
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
# Metrics are not stored in /data: containers that share this volume use the same process ids.
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    CONTEXTAPP_HOME=/data CONTEXTAPP_HOST=0.0.0.0 CONTEXTAPP_REQUIRE_SECRET_KEY=1 PROMETHEUS_MULTIPROC_DIR=/tmp/metrics
WORKDIR /app
USER contextapp
EXPOSE 8000 8001
ENTRYPOINT ["/app/docker/role"]
CMD ["web"]
